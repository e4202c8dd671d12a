"""Transactions: work that takes effect as a whole or not at all."""

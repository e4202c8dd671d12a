"""Tools as each provider knows them: their definitions, and what differs between providers."""

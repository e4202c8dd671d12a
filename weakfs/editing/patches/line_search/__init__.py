"""Finding lines in a text: by an index or in the text itself, exactly or by an equivalence."""

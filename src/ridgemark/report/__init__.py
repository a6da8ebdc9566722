"""One self-contained HTML page from records: text, tables, figures. Never sees data or models."""

"""Self-contained HTML pages of text, tables and figures, made from records and never from data or models."""

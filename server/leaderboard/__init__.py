"""Who is fast: one ranking, used by the page, the API, the export and the command."""

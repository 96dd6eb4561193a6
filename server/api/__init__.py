"""The API: the same services as the pages, as JSON under `/api/v1`."""

"""Who is in a course: people one by one, tables of them, and links with which they put themselves in."""

"""People: accounts, passwords, logins and tokens."""

"""People: accounts, passwords, logins and tokens.

service    accounts, log-ins with a password, logins, tokens
passwords  hashing them
handles    pseudonyms
links      links that let somebody set a password: forgotten, or invited
providers  identity providers, as the configuration names them
oidc       OpenID Connect: the network's part
outside    OpenID Connect: whose account it is
"""

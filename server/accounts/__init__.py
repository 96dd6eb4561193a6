"""People: accounts, passwords, logins and tokens.

accounts       accounts, log-ins with a password, logins, tokens
passwords      hashing them
second_factor  codes of an authenticator app
sealing        secrets that the database holds encrypted
handles        pseudonyms
names          whether two names look alike
links          links that let somebody set a password: forgotten, or invited
providers      identity providers, as the configuration names them
oidc           OpenID Connect: the network's part
sso            OpenID Connect: whose account it is
"""

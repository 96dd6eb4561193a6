"""`python -m client` is `ladder`."""

from client.main import main

if __name__ == "__main__":
    main(prog_name="ladder")

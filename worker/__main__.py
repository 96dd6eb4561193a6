"""`python -m worker`."""

from __future__ import annotations

import sys

from worker.app import main

sys.exit(main())

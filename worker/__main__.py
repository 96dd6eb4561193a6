"""`python -m worker`."""

from __future__ import annotations

import sys

from worker.main import main

sys.exit(main())

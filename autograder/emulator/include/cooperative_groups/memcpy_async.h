#pragma once
#include "cooperative_groups.h"
#include "cuda_emulator/copies.h"

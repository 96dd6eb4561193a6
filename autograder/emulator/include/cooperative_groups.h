#pragma once
#include "cuda_runtime.h"
#include "cuda_emulator/groups.h"

#pragma once
#include "cuda_runtime.h"
#include "cuda_emulator/copies.h"

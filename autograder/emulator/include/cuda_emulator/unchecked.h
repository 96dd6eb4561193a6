#pragma once
// Read behind all other headers and before a student's file: from here on nobody may say that accesses are not checked.
// Macros that were defined before go on to work. Words as in translate.py, which says it first and better.
#pragma GCC poison no_sanitize __no_sanitize__ no_sanitize_address __no_sanitize_address__
#pragma GCC poison no_address_safety_analysis __no_address_safety_analysis__
#pragma GCC poison no_sanitize_undefined __no_sanitize_undefined__ no_sanitize_thread __no_sanitize_thread__
#pragma GCC poison no_sanitize_coverage __no_sanitize_coverage__

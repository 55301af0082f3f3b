# Debian package: g++
set(CMAKE_C_COMPILER gcc)
set(CMAKE_CXX_COMPILER g++)

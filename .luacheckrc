-- Scripts run inside Redis: Lua 5.1 with its own tables. `require` is resolved when the scripts are built.
std = 'lua51'
read_globals = { 'redis', 'cjson', 'cmsgpack', 'struct', 'bit', 'KEYS', 'ARGV' }
max_line_length = 120
include_files = { 'src/store/**/*.lua' }

// Nothing: its target compiles the headers that all tests include.
int main() {}

/* The library that GLib opens, with one function. */
int peer_entry(void) { return 1; }

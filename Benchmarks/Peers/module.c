/* What GLib opens: a library with one function. */
int peer_entry(void) { return 1; }

public import PluginABI

/// So that what is written for modules, generated façades above all, works in the program, too.
extension PluginHost: Caller {}

public import PluginABI

/// Lets code written for modules, above all generated façades, work in the program, too.
extension PluginHost: Caller {}

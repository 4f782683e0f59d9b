// A test calls the host and declares fakes: one import provides both.
@_exported public import PluginABI
@_exported public import PluginHost

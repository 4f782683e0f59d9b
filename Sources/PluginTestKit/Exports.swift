// A test talks to the host and declares its fakes: one import gives it both.
@_exported public import PluginABI
@_exported public import PluginHost

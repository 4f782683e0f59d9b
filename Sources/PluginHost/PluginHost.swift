import PluginABI

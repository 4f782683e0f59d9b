print("pluginhost")

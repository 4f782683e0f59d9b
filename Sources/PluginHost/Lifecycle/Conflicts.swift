import PluginABI

extension Dispatcher {
    /// A module is registered whole or not at all: a target or a route belongs to the module that has it already.
    func checkConflicts(_ module: LoadedModule, with generations: [Generation]) throws(PluginError) {
        if let other = generations.first(where: { $0.name == module.manifest.name }),
            other.isInProgram || module.staged.isProgram
        {
            throw PluginError(
                .conflict,
                "\(module.manifest.name) (\(module.file)) has the name of a module that is there: \(other.label), of "
                    + "\(other.file), which keeps it. Modules of the program and of files do not replace each other.")
        }
        let others = generations.filter { $0.name != module.manifest.name }
        var routes = registry.table.routes
        for route in module.manifest.routes {
            try routes.add(RouteEntry(route, of: module.manifest.name), besides: routes.declared(with: others))
        }
        try ServiceEntry.checkConflicts(module, with: others)
        for other in generations where other.name != module.manifest.name {
            for target in module.manifest.targets where other.targets[target.name] != nil {
                throw PluginError(
                    .conflict,
                    "\(module.manifest.name) (\(module.file)) claims the target \(target.name), which belongs to "
                        + "\(other.name) (\(other.file)). \(other.name) keeps it; \(module.manifest.name) is not "
                        + "registered.")
            }
        }
    }
}

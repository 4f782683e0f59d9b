import PluginABI
import PluginFile

extension ChangeContext {
    /// Reports which of the modules that are to be isolated do not exist: the name may be mistyped.
    func tellUnknownIsolatedModules() {
        var names = configuration.isolation.debuggedModules
        names.formUnion(configuration.isolation.rules.map(\.module).filter { $0 != "*" })
        if case .named(let others) = configuration.isolation.modules { names.formUnion(others) }
        guard !names.isEmpty else { return }
        let known = Set(folders.records.values.compactMap { $0.claimedModule?.outline.name })
        for name in names.subtracting(known).sorted() {
            let problem = PluginError(
                .unknownModule,
                "The module “\(name.shortened)”, which is to run in a process of its own, was not found. Check the name: no "
                    + "other module is isolated by it.")
            core.settings.log(LogEntry(level: .warning, message: problem.message))
            tell(.problem(problem))
        }
    }
}

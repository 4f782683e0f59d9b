import PluginABI
import PluginFile

/// The removal of a module: moves its files to the version store.
struct Removal {
    let context: ChangeContext
    let name: String
    let force: Bool
    let dryRun: Bool

    func make() throws(PluginError) -> PlannedChange {
        context.update()
        let files = try FileMove.files(of: name, in: context)
        guard !files.isEmpty else { throw nothingToMove }
        let move = FileMove(context: context, name: name, files: files)
        let change = move.plan
        if !force { try change.requireNoDependents("removed") }
        if !dryRun { try move.make() }
        return change
    }

    private var nothingToMove: PluginError {
        guard let module = context.serving.all.first(where: { $0.name == name }) else {
            let names = Set(context.folders.records.values.compactMap { $0.claimedModule?.outline.name })
            return PluginError(
                .unknownModule,
                "There is no module “\(name.shortened)”.\(didYouMean(name, names.sorted()))")
        }
        let reason =
            module.module.isRegistered
            ? "was registered by the program, which can unregister it."
            : "is linked into the program and cannot be removed."
        return PluginError(.conflict, "\(module.generation.label) has no file that could be moved: it \(reason)")
    }
}

import PluginABI
import PluginFile

// What is known of a module without opening its file.

extension ChangeContext {
    /// Returns the module in a file, if its seal says enough for it to be registered: it is opened when it is needed.
    /// `nil` if the file is opened at once, also because something is wrong with the seal: that is found then.
    func knownModule(in file: StagedFile) -> LoadedModule? {
        guard configuration.start == .lazy, let seal = file.image.seal,
            let manifest = try? seal.parsedManifest(path: file.original), mayRest(manifest),
            runs(manifest.name, seal, file), let routes = try? manifest.routeEntries(scheme: configuration.firstScheme)
        else { return nil }
        return LoadedModule(
            known: file, toolchain: seal.toolchain, abiMinor: seal.abiMinor, manifest: manifest, text: seal.manifest,
            routes: routes)
    }

    /// Whether a module need not start before it is needed.
    private func mayRest(_ manifest: ModuleManifest) -> Bool {
        guard !configuration.eagerModules.contains(manifest.name), serving.modules[manifest.name] == nil else {
            return false
        }
        switch manifest.start {
        case .eager: return false
        case .lazy: return true
        case .automatic:
            return !manifest.isExclusive && !manifest.hooks.contains { [.`init`, .didStart].contains($0) }
                && !manifest.events.contains { $0.name.isHostEvent }
        }
    }

    /// Whether a module can be opened by this host, as far as its seal says.
    private func runs(_ name: String, _ seal: ManifestSeal, _ file: StagedFile) -> Bool {
        disk.workers.isolates(name) || seal.isEmbedded || seal.toolchain.isEmpty
            || disk.loader.allowsOtherToolchains || seal.toolchain == Toolchain.current
            || !file.image.needed.contains("libswiftCore.so")
    }
}

public import PluginABI
import PluginFile

/// The description of one module file.
public struct ModuleReport: Sendable {
    /// A map: `file`, `elf`, `abi`, `toolchain`, `manifest`. `exports` in `elf` lists the symbols that the file exports
    /// besides its entry function, without those of Swift, which `swiftExports` counts.
    public let json: Value
}

extension PluginHost {
    /// Reads a file without registering it. Its code runs in this process until it has returned its description: do this
    /// in a child process if the code must not do any harm.
    ///
    /// - Throws: The error that describes what is wrong with the file.
    public static func inspect(file: String, trustsEveryone: Bool = false) throws(PluginError) -> ModuleReport {
        let staging = try Staging()
        defer { staging.close() }
        let staged = try staging.stageWhenWritten(path: file, checkTrust: !trustsEveryone)
        // A module of another toolchain can be described, although it cannot be run.
        let loader = ModuleLoader(
            journal: nil, allowsOtherToolchains: true, scheme: RoutePattern.unknownScheme)
        return try report(try loader.load(staged, try loader.open(staged)), staged, file)
    }

    /// Reads a file as ``inspect(file:trustsEveryone:)`` does, but runs its code in a scan process. For programs that
    /// end soon, since the description is never freed.
    ///
    /// - Parameter timeout: How long the constructors or the entry function may take.
    /// - Returns: `nil` if the file does not pass, or no such process can be started. The file may be read in another
    ///   way then: by a process that has the symbols of this program, and reports a crash as one of the program.
    /// - Throws: The error that describes what is wrong with the file.
    package static func inspectByScan(
        file: String, trustsEveryone: Bool, timeout: Duration
    ) throws(PluginError) -> ModuleReport? {
        let staging = try Staging()
        defer { staging.close() }
        let staged = try staging.stageWhenWritten(path: file, checkTrust: !trustsEveryone)
        let workers = Workers(HostConfiguration(folders: [])) { _ in nil }
        guard let program = try? workers.program(for: staged),
            let outcome = try? ScanProcess.run([staged], program: program, limit: timeout, describes: true),
            let description = outcome.description
        else { return nil }
        let loader = ModuleLoader(
            journal: nil, allowsOtherToolchains: true, scheme: RoutePattern.unknownScheme)
        return try report(try loader.check(description, staged), staged, file)
    }

    private static func report(
        _ module: LoadedModule, _ staged: StagedFile, _ file: String
    ) throws(PluginError) -> ModuleReport {
        let image = staged.image
        let exports = try exports(of: staged)
        return ModuleReport(json: [
            "file": .string(file),
            "elf": [
                "size": .int(staged.size), "mapped": .int(image.mappedSize),
                "soname": image.soname.map(Value.string) ?? nil, "buildID": image.buildID.map(Value.string) ?? nil,
                "needed": .list(image.needed.map(Value.string)), "runpath": .list(image.runpath.map(Value.string)),
                "staged": .list(staged.libraries.map(Value.string)),
                "exports": .list(exports.names.map(Value.string)), "swiftExports": .int(exports.swiftCount),
            ],
            "abi": ["major": .int(Int(PLUGIN_ABI_MAJOR)), "minor": .int(Int(module.abiMinor))],
            "toolchain": module.toolchain.isEmpty ? nil : .string(module.toolchain),
            "manifest": try Value(json: module.manifestText),
        ])
    }

    /// Returns the exported symbols that a module is not expected to export.
    private static func exports(of staged: StagedFile) throws(PluginError) -> ELFExports {
        let file = try MappedFile(staged.path)
        return try ELFImage.exports(of: file.bytes, path: staged.original)
    }
}

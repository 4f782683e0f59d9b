internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginFile

/// The folder of a new module: its files and their contents.
struct ModulePackage: Sendable {
    enum Language: String, Sendable, CaseIterable {
        case swift, c
        case cPlusPlus = "c++"
        case rust
    }

    /// The absolute path of the folder.
    let folder: String
    /// The files by their paths in the folder.
    let files: [(path: String, text: String)]

    /// - Throws: `usage` if modules in the language cannot use the dependency, `fileNotFound` if the dependency lacks a
    ///   file that the module needs.
    init(
        _ name: ModuleName, _ language: Language, _ dependency: PackageDependency, folder: String
    ) throws(PluginError) {
        self.folder = folder
        switch language {
        case .swift: files = SwiftTemplate.files(name, dependency, in: folder)
        case .c: files = CTemplate.files(name, headers: try dependency.headers(for: folder))
        case .cPlusPlus: files = CPlusPlusTemplate.files(name, headers: try dependency.headers(for: folder))
        case .rust: files = RustTemplate.files(name, declarations: try dependency.declarationsInRust())
        }
    }

    /// Writes the files.
    ///
    /// - Throws: `cannotCreate` if the folder exists and is not empty, or if the files cannot be written.
    func write() throws(PluginError) {
        let manager = FileManager.default
        let present = (try? manager.contentsOfDirectory(atPath: folder)) ?? []
        let isFree = fileStatus(folder).map { $0.st_mode & S_IFMT == S_IFDIR } ?? true
        guard present.isEmpty, isFree else {
            throw PluginError(
                .cannotCreate, "\(folder) already exists, and is not overwritten. Choose another folder with '--at'.")
        }
        do {
            for (path, text) in files {
                let file = URL(filePath: folder).appending(path: path)
                try manager.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data(text.utf8).write(to: file, options: .withoutOverwriting)
            }
        } catch {
            throw PluginError(.cannotCreate, "\(folder) cannot be written: \(CocoaError.text(error))")
        }
    }
}

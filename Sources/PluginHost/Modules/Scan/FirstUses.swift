import PluginABI
import PluginFile
import Synchronization

/// The first uses of generic types that a start needs after it has opened the modules.
///
/// When a process first uses a generic type with requirements, the Swift runtime searches the protocol conformances of
/// all open libraries for them. With a thousand open modules, each of these searches takes milliseconds. They are
/// therefore made before the first module is opened.
enum FirstUses {
    private static let areMade = Atomic(false)

    private static let manifest: StaticString = #"{"name": "Example", "version": "1.0.0"}"#

    /// Makes the first uses, unless this process has made them.
    static func make(_ hooks: Hooks) {
        guard !areMade.exchange(true, ordering: .relaxed) else { return }
        // Each operation stands for the types that it uses; its result is not needed.
        _ = manifest.withUTF8Buffer { text in try? ModuleManifest(parsing: UnsafeRawBufferPointer(text), abiMinor: 0) }
        var folders = FolderContents()
        folders.put(FileRecord(path: "/", folder: "/", identity: nil))
        _ = hooks.attempt {
            Result<Void, PluginError>.success(())
        } late: { _ in
        }
    }
}

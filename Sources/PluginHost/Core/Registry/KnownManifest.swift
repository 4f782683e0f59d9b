import PluginABI
import PluginFile

/// What is known of the manifest of a module whose file is not open.
struct KnownManifest: Sendable {
    let text: KnownText
    let outline: ModuleOutline
    /// The manifest, if it was read; otherwise ``manifest`` reads it.
    let read: ModuleManifest?
    private let abiMinor: UInt16

    /// Returns `nil` if the text is not a manifest.
    ///
    /// - Parameters:
    ///   - index: The outline as bytes. If it is not empty, the text is not read yet.
    ///   - abiMinor: The minor version of the binary interface that the module was built for.
    init?(_ text: KnownText, _ index: KnownText = KnownText(""), abiMinor: UInt16) {
        (self.text, self.abiMinor) = (text, abiMinor)
        if let outline = index.withBytes({ ModuleOutline($0) }) {
            (self.outline, read) = (outline, nil)
            return
        }
        let parsed = text.withBytes { try? ModuleManifest(parsing: $0, abiMinor: abiMinor) }
        guard let parsed else { return nil }
        (outline, read) = (ModuleOutline(parsed), parsed)
    }

    /// The manifest, read from the text. If the text cannot be read although the outline was written from it, the
    /// result has no actions: what the module offers becomes known when it is started.
    var manifest: ModuleManifest {
        read ?? text.withBytes { try? ModuleManifest(parsing: $0, abiMinor: abiMinor) } ?? ModuleManifest(outline)
    }
}

import Foundation
import Testing

@testable import TestSupport

/// The article about the keys of the manifest. `scripts/manifest-keys` generates it again by setting the variable
/// `PLUGINHOST_MAKE_ARTICLES`.
@Suite struct ManifestKeysTests {
    @Test func `The article about the keys of the manifest is the one that the schema makes`() throws {
        let text = try ManifestKeys().text
        if ProcessInfo.processInfo.environment["PLUGINHOST_MAKE_ARTICLES"] != nil {
            try Data(text.utf8).write(to: URL(filePath: ManifestKeys.article))
        }
        let article = try String(contentsOfFile: ManifestKeys.article, encoding: .utf8)
        #expect(article == text, "The schema has changed: run scripts/manifest-keys.")
    }

    @Test func `The article has every object of the schema, and every key`() throws {
        let keys = try ManifestKeys()
        #expect(keys.objects == ManifestKeys.described)
        for key in ["`abiMinor`", "`exclusive`", "`demands`", "`groups`", "`singleton`", "`handles`"] {
            #expect(keys.text.contains("| \(key) | "), "\(key)")
        }
        #expect(keys.text.contains("| `name` | name | required |"))
        #expect(keys.text.contains("| `level` | `basic`, `normal` | `normal` |"))
        #expect(keys.text.contains("| `async` | boolean | `false` |"))
    }
}

internal import Foundation
internal import PluginHost

/// A folder that goes with the test.
final class TemporaryFolder: Sendable {
    /// Short, since sockets are made in it.
    let path = try! makeTemporaryFolder("/tmp/pluginhost-XXXXXX")

    deinit { try? FileManager.default.removeItem(atPath: path) }
}

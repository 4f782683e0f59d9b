import PluginHost

@testable import TestSupport

/// Runs `body` with a host that has loaded sample modules.
func withHost(
    _ modules: String..., maximumURLLength: Int? = nil,
    body: (PluginHost) throws -> Void
) throws {
    let test = try TestHost(modules.map { built("lib\($0).so") }) { configuration in
        if let maximumURLLength, maximumURLLength != configuration.maximumURLLength {
            configuration.maximumURLLength = maximumURLLength
        }
    }
    defer { withExtendedLifetime(test) {} }
    try body(test.host)
}

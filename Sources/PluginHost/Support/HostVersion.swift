/// The version of the host and of the program `pluginhost`.
package enum HostVersion {
    package static let current = "0.1.0"
}

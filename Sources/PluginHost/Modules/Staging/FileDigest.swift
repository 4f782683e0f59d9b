import CPluginHost

/// A 64-bit digest, the same in every process. It distinguishes files that differ by accident or by a new build.
struct FileDigest {
    private var state: plugin_host_digest

    /// - Parameter size: The size of the file, in bytes.
    init(size: Int) { state = plugin_host_digest_begin(UInt64(size)) }

    var value: UInt64 { plugin_host_digest_value(state) }

    /// Adds the next part of the file. Its length must be a multiple of 64 bytes, unless it is the last part.
    mutating func mix(_ bytes: UnsafeRawBufferPointer) {
        plugin_host_digest_mix(&state, bytes.baseAddress, bytes.count)
    }

    mutating func mix(_ word: UInt64) { plugin_host_digest_mix_word(&state, word) }
}

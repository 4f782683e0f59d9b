import PluginABI
import PluginFile

extension Staging {
    /// Reads a sealed file without copying or opening it, since neither may ever become necessary. None of its code
    /// runs.
    ///
    /// - Parameter checkTrust: Whether to reject a file that users other than root and this user can write.
    /// - Returns: The stand-in for a copy of the file, which does not exist. `nil` if the file must be staged: it has
    ///   no seal, may bring libraries along, is being written, or something is wrong with it, which
    ///   ``stage(path:checkTrust:as:)`` reports.
    func readSealed(path: String, checkTrust: Bool) -> StagedFile? {
        do throws(PluginError) {
            if checkTrust {
                var trusted = TrustedFolders()
                try trusted.check(linkAt: path)
            }
            let source = try SourceFile(opening: path)
            if checkTrust { try source.checkTrust() }
            guard !source.isBeingWritten(), source.identity.size <= maximumFileBytes, try source.isSealed() else {
                return nil
            }
            let bytes = try source.contents(limit: maximumFileBytes)
            guard bytes.count == source.identity.size, !source.hasChanged() else { return nil }
            var digest = FileDigest(size: bytes.count)
            let image = try bytes.span.withUnsafeBytes { bytes throws(PluginError) in
                digest.mix(bytes)
                return try ELFImage(reading: bytes, path: path)
            }
            try image.requireEntry(path: path)
            guard !image.runpath.contains(where: { $0.contains("ORIGIN") }) else { return nil }
            return StagedFile(
                path: "", original: path, identity: source.identity, digest: digest.value, size: bytes.count,
                image: image, folder: nil, libraries: [])
        } catch {
            return nil
        }
    }
}

extension SourceFile {
    /// Returns whether the file has a seal, without reading more than its tables and the seal.
    ///
    /// - Throws: As ``inspect(_:_:)``; the error of a seal that is wrong.
    fileprivate func isSealed() throws(PluginError) -> Bool {
        var bytesRead = 0
        return try inspect(&bytesRead) { bytes throws(PluginError) in
            try ManifestSeal(of: bytes, ELFSections(bytes)) != nil
        }
    }
}

import PluginABI

/// The target and action of a route, the groups of its pattern, and other data that almost every call of the route
/// needs, in one block of memory. Consecutive routes with the same data share it: with many routes, hardly any entry is
/// in the processor's cache, but shared destinations are.
final class RouteDestination: ManagedBuffer<RouteDestination.Header, RouteDestination.Group> {
    // Immutable. The groups are followed by the texts of target and action, then by the names of the groups.

    struct Header {
        let facts: Facts
        let groups: Int
        /// The length of the target in bytes.
        let target: Int
        /// The length of the action in bytes.
        let action: Int
    }

    struct Facts: Equatable {
        let segmentCount: Int
        let capturesWholeSegments: Bool
        let hasDefaults: Bool
    }

    /// A group of the pattern.
    struct Group {
        /// The name of the group, which is a number if the pattern has none.
        let name: plugin_string
        /// The index of the segment that the group captures, if all groups are whole segments.
        let segment: Int
    }

    /// Returns the destination of a route.
    ///
    /// - Parameter previous: The destination of the previous route, which is returned if it has the same data.
    static func make(
        _ target: String, _ action: String, _ pattern: RoutePattern, hasDefaults: Bool,
        after previous: RouteDestination?
    ) -> RouteDestination {
        let (names, segments) = (pattern.names, pattern.capturedSegments)
        let facts = Facts(
            segmentCount: pattern.path?.segments.count ?? 0,
            capturesWholeSegments: pattern.capturesWholeSegments, hasDefaults: hasDefaults)
        if let previous, previous.header.facts == facts, previous.isSame(target, action, names, segments) {
            return previous
        }
        let header = Header(
            facts: facts, groups: names.count, target: target.utf8.count, action: action.utf8.count)
        let texts = names.reduce(header.target + header.action) { $0 + $1.utf8.count }
        let size = MemoryLayout<Group>.stride
        let made = unsafeDowncast(
            create(minimumCapacity: names.count + (texts + size - 1) / size) { _ in header }, to: RouteDestination.self)
        made.withUnsafeMutablePointerToElements { groups in
            var end = UnsafeMutableRawPointer(groups + names.count)
            _ = plugin_string(copying: target, to: &end)
            _ = plugin_string(copying: action, to: &end)
            for (index, name) in names.enumerated() {
                let segment = index < segments.count ? segments[index] : 0
                (groups + index).initialize(to: Group(name: plugin_string(copying: name, to: &end), segment: segment))
            }
        }
        return made
    }

    private func isSame(_ target: String, _ action: String, _ names: [String], _ segments: [Int]) -> Bool {
        func isText(_ text: String, _ other: plugin_string) -> Bool { text.withPluginString { $0 == other } }
        let address = address
        guard groups.count == names.count, isText(target, address.target), isText(action, address.action) else {
            return false
        }
        return groups.indices.allSatisfy { index in
            isText(names[index], groups[index].name)
                && groups[index].segment == (index < segments.count ? segments[index] : 0)
        }
    }

    /// The number of segments of the path that can be decided alone: all of them, unless a `*` or the like follows.
    @inline(__always)
    var segmentCount: Int { withUnsafeMutablePointerToHeader { $0.pointee.facts.segmentCount } }

    /// Whether all groups are whole segments of the path.
    @inline(__always)
    var capturesWholeSegments: Bool { withUnsafeMutablePointerToHeader { $0.pointee.facts.capturesWholeSegments } }

    /// Whether there are values for parameters that neither the caller nor the URL gives.
    @inline(__always)
    var hasDefaults: Bool { withUnsafeMutablePointerToHeader { $0.pointee.facts.hasDefaults } }

    /// The groups of the pattern in order. They live as long as this object.
    @inline(__always)
    var groups: UnsafeBufferPointer<Group> {
        withUnsafeMutablePointers { header, groups in UnsafeBufferPointer(start: groups, count: header.pointee.groups) }
    }

    /// The target and action as strings of the binary interface. They live as long as this object.
    @inline(__always)
    var address: (target: plugin_string, action: plugin_string) {
        withUnsafeMutablePointers { header, groups in
            let texts = UnsafeRawPointer(groups + header.pointee.groups).assumingMemoryBound(to: CChar.self)
            return (
                plugin_string(bytes: texts, count: UInt64(header.pointee.target)),
                plugin_string(bytes: texts + header.pointee.target, count: UInt64(header.pointee.action))
            )
        }
    }
}

extension plugin_string {
    /// Copies a text to `end`, and moves `end` past it.
    fileprivate init(copying text: String, to end: inout UnsafeMutableRawPointer) {
        var text = text
        self = text.withUTF8 { bytes in
            if let start = bytes.baseAddress { end.copyMemory(from: start, byteCount: bytes.count) }
            return plugin_string(bytes: end.assumingMemoryBound(to: CChar.self), count: UInt64(bytes.count))
        }
        end += Int(count)
    }
}

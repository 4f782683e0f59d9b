import PluginABI

@testable import PluginHost

extension FuzzTarget {
    /// The first line is a pattern, and each further line is a URL to match with it.
    func testPattern(_ bytes: UnsafeRawBufferPointer) {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 8, omittingEmptySubsequences: false)
        guard let first = lines.first.flatMap(text), let pattern = try? URLPattern(first) else { return }
        for url in lines.dropFirst().compactMap(text) { _ = try? pattern.match(url) }
        _ = try? pattern.match(first)
    }

    /// A URL, matched with all kinds of patterns.
    func testURL(_ bytes: UnsafeRawBufferPointer) {
        guard let url = text(bytes) else { return }
        for pattern in Self.patterns { _ = try? pattern.match(url) }
    }

    private static let patterns = [
        "app://", "//*/*", "app://shop/:key", "https://:host.example/:a/:b?", "app://*/img-:id.png",
        "app://x/:n([0-9]{1,4})/*", "app://x{/:y}*", "/:a/*",
    ].map { (pattern: String) in
        do throws(PluginError) { return try URLPattern(pattern) } catch {
            preconditionFailure("\(pattern): \(error.message)")
        }
    }

    static let patternSeeds = [
        "app://shop/:key\napp://shop/42?x=1", "https://:h.example:443/a/:b?/*\nhttps://x.example/a/b/c",
        "/:x([a-z0-9_]{1,8}|\\d+)/img-:id.png{/:rest}*\n/ab/img-7.png/x", "//*/:a(([ab]{0,9}){0,9}c)\nany://h/abc",
        "app://x/\\:y/%20/é\napp://x/:y/%20/%C3%A9",
    ]

    static let urlSeeds = [
        "app://shop/article/42?a=1&a=2&b=%C3%A9+x&c#f", "https://User.Example.COM:443/a/../b/./%2E%2e/c%2Fd//?=&q",
        "home/page?x=1", "//host/path", "app://", "x:/y", "app://h\u{E9}/\u{6F22}?u=https%3A%2F%2Fx%3Fy%3D1",
    ]
}

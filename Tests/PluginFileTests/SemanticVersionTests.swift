import Testing

@testable import PluginFile

@Suite struct SemanticVersionTests {
    @Test func `Versions are ordered as the specification says`() throws {
        let texts = [
            "0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
            "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0",
        ]
        let versions = try texts.map { try #require(SemanticVersion($0)) }
        for (index, version) in versions.enumerated() {
            #expect(version.description == texts[index])
            for later in versions[(index + 1)...] { #expect(version < later && !(later < version) && version != later) }
        }
    }

    @Test func `Build metadata is ignored in comparisons`() throws {
        let versions = try ["1.0.0+a", "1.0.0+b.001"].map { try #require(SemanticVersion($0)) }
        #expect(versions[0] == versions[1])
        #expect(Set(versions).count == 1)
        #expect(versions[1].build == ["b", "001"])
    }

    @Test(arguments: [
        "", "1", "1.0", "1.0.0.0", "01.0.0", "1.0.-1", "1.0.0-", "1.0.0-a..b", "1.0.0-01", "1.0.0+", "1.0.0-ä",
        "v1.0.0",
        " 1.0.0", "1.0.99999999999999999999999", "1.0.+", "1.0.0-a+b+c",
    ])
    func `Other texts are not versions`(text: String) { #expect(SemanticVersion(text) == nil) }

    @Test func `Numbers of any length are compared`() throws {
        let small = try #require(SemanticVersion("1.0.0-99999999999999999999998"))
        let large = try #require(SemanticVersion("1.0.0-99999999999999999999999"))
        #expect(small < large)
    }

    @Test func `A version may have 256 bytes, and no more`() {
        let longest = "1.0.0-" + String(repeating: "a", count: 250)
        #expect(SemanticVersion(longest) != nil && SemanticVersion(longest + "a") == nil)
    }
}

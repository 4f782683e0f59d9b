import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import TestSupport

@Suite struct `Reading property lists` {
    private func read(_ text: String) throws(MalformedText) -> Value {
        try Array(text.utf8).withUnsafeBytes { bytes in
            Result { () throws(MalformedText) in try PropertyListReader.read(bytes) }
        }.get()
    }

    @Test func `Values of every kind except dates are read`() throws {
        let value = try read(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <!-- a note with <tags> & marks -->
            <plist version="1.0"><dict>
              <key>s</key><string>a &lt;b&gt; &amp; &quot;c&apos; &#65;&#x1F600;<![CDATA[<x>&amp;]]><!-- no --> d</string>
              <key>i</key><integer> -42 </integer><key>h</key><integer>0x1F</integer>
              <key>r</key><real>1.5e3</real><key>t</key><true/><key>f</key><false></false>
              <key>d</key><data> AQID
                BA== </data>
              <key>l</key><array><string/><string></string><dict/><array/><array></array></array>
            </dict></plist>
            """)
        #expect(
            value == [
                "s": "a <b> & \"c' A😀<x>&amp; d", "i": -42, "h": 31, "r": 1500.0, "t": true, "f": false,
                "d": .bytes([1, 2, 3, 4]), "l": ["", "", [:], [], []],
            ])
        #expect(try read("\u{FEFF}<dict><key>a</key><true/></dict>") == ["a": true])
    }

    @Test func `Property lists that Foundation writes are read without loss`() throws {
        let object: [String: Any] = [
            "app://a/:key": "A/b",
            "\"<&>'\u{9}": ["n": Int.min, "m": Int.max, "r": 0.1, "x": [true, false, Data([0, 255])]],
        ]
        let data = try PropertyListSerialization.data(fromPropertyList: object, format: .xml, options: 0)
        let value = try read(String(decoding: data, as: UTF8.self))
        #expect(
            value == [
                "app://a/:key": "A/b",
                "\"<&>'\u{9}": ["n": .int(.min), "m": .int(.max), "r": 0.1, "x": [true, false, .bytes([0, 255])]],
            ])
    }

    @Test(arguments: [
        ("bplist00", "binary property list"), ("", "tag is missing"), ("text", "tag is missing"),
        ("<plist>", "tag is missing"), ("<plist><dict><key>a</key></dict></plist>", "a value is missing"),
        ("<dict><true/></dict>", "a <key> is missing"), ("<dict><key>a</key><true/>", "tag is missing"),
        ("<dict><key>a</key><true/><key>a</key><true/></dict>", "the key “a” occurs twice"),
        ("<date>2000-01-01T00:00:00Z</date>", "a date"), ("<real>nan</real>", "finite"),
        ("<real>1e400</real>", "finite"),
        ("<integer>9223372036854775808</integer>", "64-bit integer"), ("<integer></integer>", "64-bit integer"),
        ("<data>*</data>", "base64"), ("<string>&nbsp;</string>", "an entity is unknown"),
        ("<string>&#xD800;</string>", "numeric entity"), ("<string>&#0;</string>", "numeric entity"),
        ("<string>&#99999999999999999999;</string>", "numeric entity"),
        ("<string><b/></string>", "</string> is missing"),
        ("<string", "not terminated"), ("<string a=\"", "not terminated"), ("<!-- x", "“-->” is missing"),
        ("<>", "no name"),
        ("<uid/>", "<uid> is not allowed here"), ("<true/><true/>", "text after its end"),
        ("<!DOCTYPE plist [<!ENTITY a \"b\">]><true/>", "of its own"),
    ]) func `Invalid property lists are refused, with the reason`(text: String, message: String) {
        let failure = #expect(throws: MalformedText.self) { try read(text) }
        #expect(failure?.message.contains(message) == true, "\(failure?.message ?? "")")
    }

    @Test func `128 levels are read, and no more`() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "<array>", count: depth) + String(repeating: "</array>", count: depth)
        }
        #expect(try read(nested(128)).kind == .list)
        #expect(throws: MalformedText.self) { try read(nested(129)) }
        #expect(throws: MalformedText.self) { try read(String(repeating: "<array>", count: 1 << 20)) }
    }

    /// Foundation's decoder takes eight seconds for 16 MiB of the first case, and never ends for repeated names.
    @Test(arguments: [
        ("<array>", "<true/>", "</array>"), ("<array>", "<dict/>", "</array>"), ("<string>", "&amp;", "</string>"),
        ("<string>", "<![CDATA[x]]>", "</string>"), ("<integer>", "1", "</integer>"), ("<real>", "1", "</real>"),
        ("<dict><key>", "\u{315}\u{300}\u{323}", "</key><true/></dict>"), ("<data>", "A ", "</data>"),
        ("", "<!---->", "<true/>"), ("<!--", "<!--", ""), ("<plist ", "a='>'", "><true/></plist>"), ("", "&", ""),
    ]) func `A megabyte of anything is read or refused in seconds`(begin: String, part: String, end: String) {
        let text = begin + String(repeating: part, count: (1 << 20) / part.utf8.count) + end
        let start = threadTime()
        _ = try? read(text)
        #expect(threadTime() - start < .seconds(60))
    }
}

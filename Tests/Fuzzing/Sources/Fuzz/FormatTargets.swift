@testable import PluginABI
@testable import PluginFile

extension FuzzTarget {
    func testELF(_ bytes: UnsafeRawBufferPointer) {
        guard let image = try? ELFImage(reading: bytes, path: "x.so") else { return }
        _ = try? image.requireEntry(path: "x.so")
        _ = try? ELFImage.exports(of: bytes, path: "x.so")
    }

    /// A value that was read can be written and read again, and contains no character that a terminal must not receive.
    func testJSON(_ bytes: UnsafeRawBufferPointer) {
        let read = { (rules: JSONReader.Rules) in try? JSONText.parse(bytes, rules) }
        if read(.file) != nil { precondition(read(.value) != nil, "Rules that allow more accept less.") }
        guard let value = read(.message) else { return }
        let json = value.json
        precondition(!json.unicodeScalars.contains { $0.isTerminalControl }, "A control character is written.")
        guard let again = try? Value(jsonMessage: Array(json.utf8)) else {
            preconditionFailure("The text that was written cannot be read: \(json)")
        }
        precondition(again.kind == value.kind || again.double == value.double, "The value has changed.")
    }

    func testPropertyList(_ bytes: UnsafeRawBufferPointer) {
        guard text(bytes) != nil, let value = try? PropertyListReader.read(bytes) else { return }
        _ = value.json
    }

    static let jsonSeeds = [
        #"{"jsonrpc":"2.0","id":1,"method":"call","params":{"target":"A","parameters":{"n":-1.5e3,"l":[true,false,null]}}}"#,
        #"["\u0041\ud83d\ude00\n\"\\\/", "é漢", {}, [], 9223372036854775807, 1e400, 0.1, 3.0]"#,
        #"{"name":"M","version":"1.0.0","targets":[{"name":"A","actions":[{"name":"x"}]}]}"#,
        String(repeating: "[", count: 513),
    ]

    static let propertyListSeeds = [
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0"><dict><key>app://a/:b</key><string>A/b &amp; &#x41;<![CDATA[x]]></string>
        <key>c</key><dict><key>action</key><string>A/c</string><!-- note --><key>defaults</key><dict><key>n</key>
        <integer>-42</integer><key>r</key><real>1.5e3</real><key>t</key><true/><key>l</key><array><false></false>
        <data>AAEC</data><date>2020-01-01T00:00:00Z</date></array></dict></dict></dict></plist>
        """
    ]
}

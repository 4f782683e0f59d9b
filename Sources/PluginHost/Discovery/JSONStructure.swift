/// The brackets, commas and colons of a JSON text, outside of its strings, with the depth at which they stand: what can
/// be known of a text before it is decoded, in one pass and without memory.
struct JSONStructure<Text: Collection<UInt8>>: Sequence, IteratorProtocol {
    private var rest: Text.SubSequence
    private var offset = -1
    private var depth = 0

    init(_ text: Text) { rest = text[...] }

    struct Mark {
        let byte: UInt8
        /// In bytes from the beginning.
        let offset: Int
        /// How many brackets are open behind the mark.
        let depth: Int
    }

    mutating func next() -> Mark? {
        while let byte = pop() {
            switch byte {
            case UInt8(ascii: "\""): skipString()
            case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: ":"), UInt8(ascii: ","): break
            default: continue
            }
            if byte != UInt8(ascii: "\"") { return Mark(byte: byte, offset: offset, depth: depth) }
        }
        return nil
    }

    private mutating func skipString() {
        while let byte = pop(), byte != UInt8(ascii: "\"") {
            if byte == UInt8(ascii: "\\") { _ = pop() }
        }
    }

    private mutating func pop() -> UInt8? {
        offset += 1
        return rest.popFirst()
    }
}

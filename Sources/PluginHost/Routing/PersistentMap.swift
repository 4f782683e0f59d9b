/// A map's reference to an object. It can also contain data that a search needs, so that the object itself need not be
/// fetched from memory.
protocol PersistentMapReference {
    associatedtype Object: AnyObject
    var object: Unmanaged<Object> { get }
    init(to object: Object)
}

extension Unmanaged: PersistentMapReference {
    var object: Self { self }
    init(to object: Instance) { self = .passUnretained(object) }
}

/// A persistent map from texts to objects: copies share their common pages, so changing a copy of a large map copies
/// only a page of about eight objects and the list of pages. A small map has one page.
///
/// It is optimized for searching: a search does not retain objects, and texts of up to 15 bytes are stored in the slots
/// themselves.
struct PersistentMap<Reference: PersistentMapReference>: ~Copyable {
    typealias Value = Reference.Object
    fileprivate typealias Page = TextPage<Reference>

    private enum Pages {
        case none
        case one(Unmanaged<Page>)
        /// The number of pages is a power of two. The low bits of a text's hash are the index of its page.
        case many(UnsafeMutableBufferPointer<Unmanaged<Page>>)
    }

    private var pages = Pages.none
    private(set) var count = 0

    init() {}

    init(copying other: borrowing PersistentMap) {
        count = other.count
        switch other.pages {
        case .none: break
        case .one(let page): pages = .one(page.retain())
        case .many(let others):
            let copies = UnsafeMutableBufferPointer<Unmanaged<Page>>.allocate(capacity: others.count)
            _ = copies.initialize(from: others)
            for page in copies { _ = page.retain() }
            pages = .many(copies)
        }
    }

    deinit {
        switch pages {
        case .none: break
        case .one(let page): page.release()
        case .many(let pages):
            for page in pages { page.release() }
            pages.deallocate()
        }
    }

    var isEmpty: Bool { count == 0 }

    /// Returns the reference to the object of a text, if there is one. The object lives as long as this map or a copy
    /// that contains it.
    @inline(__always)
    func find(_ text: RawText) -> Reference? {
        switch pages {
        case .none: return nil
        case .one(let page): return Page.find(TextKey(text), in: page)
        case .many(let pages):
            let key = TextKey(text)
            return Page.find(key, in: pages[key.pageIndex(among: pages.count)])
        }
    }

    /// Changes the object of a text. `body` receives `nil` if there is none, and sets `nil` to remove it.
    mutating func update(_ text: RawText, _ body: (inout Value?) -> Void) {
        let key = TextKey(text)
        var added = 0
        change(key) { page in
            if !isKnownUniquelyReferenced(&page) { page = Page.copy(page, room: page.header + 1) }
            let known = page.index(of: key)
            // The object is taken out while it is changed, so that it has one owner.
            var value = known.map { page.take($0) }
            body(&value)
            added = (value == nil ? 0 : 1) - (known == nil ? 0 : 1)
            switch (known, value) {
            case (let known?, let value?): page.put(value, known)
            case (let known?, nil): page.remove(known)
            case (nil, let value?):
                if page.header == page.room { page = Page.copy(page, room: max(2, page.header * 2)) }
                page.add(key, value)
            case (nil, nil): break
            }
        }
        count += added
        if added > 0 { growIfFull() }
    }

    /// Lends the page of a text to `body`, as its only owner.
    private mutating func change(_ key: TextKey, _ body: (inout Page) -> Void) {
        switch pages {
        case .none:
            var page = Page.make(room: 1)
            body(&page)
            pages = .one(.passRetained(page))
        case .one(let old):
            pages = .none
            var page = old.takeRetainedValue()
            body(&page)
            pages = .one(.passRetained(page))
        case .many(let pages):
            let index = key.pageIndex(among: pages.count)
            var page = pages[index].takeRetainedValue()
            body(&page)
            pages[index] = .passRetained(page)
        }
    }

    private mutating func growIfFull() {
        let old: UnsafeMutableBufferPointer<Unmanaged<Page>>
        switch pages {
        case .none: return
        case .one(let page):
            guard count > 16 else { return }
            old = .allocate(capacity: 1)
            old.initialize(repeating: page)
        case .many(let pages):
            guard count > pages.count * 8 else { return }
            old = pages
        }
        let new = UnsafeMutableBufferPointer<Unmanaged<Page>>.allocate(capacity: old.count * 2)
        for (index, page) in old.enumerated() {
            let page = page.takeRetainedValue()
            for half in 0..<2 {
                let target = index + half * old.count
                let part = Page.copy(page, room: page.header) { $0.pageIndex(among: new.count) == target }
                new.initializeElement(at: target, to: .passRetained(part))
            }
        }
        old.deallocate()
        pages = .many(new)
    }

    /// Returns the most steps, as ``SearchWork`` counts them, that a search on the page of this text takes. They depend
    /// on the number of texts on the page and on the lengths of long texts.
    func work(of text: RawText) -> Int {
        let key = TextKey(text)
        return switch pages {
        case .none: 0
        case .one(let page): page._withUnsafeGuaranteedRef(\.work)
        case .many(let pages): pages[key.pageIndex(among: pages.count)]._withUnsafeGuaranteedRef(\.work)
        }
    }

    /// The maximum number of steps that a search for any text takes.
    var work: Int {
        switch pages {
        case .none: 0
        case .one(let page): page.takeUnretainedValue().work
        case .many(let pages): pages.reduce(0) { max($0, $1.takeUnretainedValue().work) }
        }
    }

    /// Calls `body` with each object, in no particular order.
    func visit(_ body: (Value) -> Void) {
        switch pages {
        case .none: break
        case .one(let page): page.takeUnretainedValue().visit(body)
        case .many(let pages): for page in pages { page.takeUnretainedValue().visit(body) }
        }
    }
}

// A map that is changed has one owner, and shared pages are never changed.
extension PersistentMap: @unchecked Sendable where Reference.Object: Sendable {}

/// A page of texts and their objects in an array. The header is their number.
private final class TextPage<Reference: PersistentMapReference>: ManagedBuffer<Int, TextPage.Slot> {
    typealias Value = Reference.Object

    struct Slot {
        let key: TextKey
        var value: Reference
    }

    static func make(room: Int) -> TextPage {
        unsafeDowncast(create(minimumCapacity: room) { _ in 0 }, to: TextPage.self)
    }

    /// Returns a new page with the same objects, or some of them.
    static func copy(_ page: TextPage, room: Int, where isMeant: (TextKey) -> Bool = { _ in true }) -> TextPage {
        let copy = make(room: room)
        page.withUnsafeMutablePointers { count, slots in
            for slot in UnsafeBufferPointer(start: slots, count: count.pointee) where isMeant(slot.key) {
                copy.add(slot.key, slot.value.object.takeUnretainedValue())
            }
        }
        return copy
    }

    deinit {
        withUnsafeMutablePointers { count, slots in
            for slot in UnsafeBufferPointer(start: slots, count: count.pointee) {
                slot.value.object.release()
                slot.key.free()
            }
        }
    }

    var room: Int { capacity }

    @inline(__always)
    static func find(_ key: TextKey, in page: Unmanaged<TextPage>) -> Reference? {
        page._withUnsafeGuaranteedRef { page in
            page.withUnsafeMutablePointers { count, slots in
                for index in 0..<count.pointee where slots[index].key == key { return slots[index].value }
                return nil
            }
        }
    }

    func index(of key: TextKey) -> Int? {
        withUnsafeMutablePointers { count, slots in
            for index in 0..<count.pointee where slots[index].key == key { return index }
            return nil
        }
    }

    func add(_ key: TextKey, _ value: Value) {
        withUnsafeMutablePointers { count, slots in
            (slots + count.pointee).initialize(to: Slot(key: key.copy(), value: Self.retained(value)))
            count.pointee += 1
        }
    }

    /// Takes the object out of a slot. ``put(_:_:)`` or ``remove(_:)`` must follow.
    func take(_ index: Int) -> Value {
        withUnsafeMutablePointerToElements { $0[index].value.object.takeRetainedValue() }
    }

    func put(_ value: Value, _ index: Int) {
        withUnsafeMutablePointerToElements { $0[index].value = Self.retained(value) }
    }

    private static func retained(_ value: Value) -> Reference {
        let reference = Reference(to: value)
        _ = reference.object.retain()
        return reference
    }

    func remove(_ index: Int) {
        withUnsafeMutablePointers { count, slots in
            slots[index].key.free()
            count.pointee -= 1
            if index < count.pointee { slots[index] = slots[count.pointee] }
        }
    }

    func visit(_ body: (Value) -> Void) {
        withUnsafeMutablePointers { count, slots in
            for slot in UnsafeBufferPointer(start: slots, count: count.pointee) {
                body(slot.value.object.takeUnretainedValue())
            }
        }
    }

    /// The maximum number of steps that a search on this page takes.
    var work: Int {
        withUnsafeMutablePointers { count, slots in
            UnsafeBufferPointer(start: slots, count: count.pointee).reduce(0) { $0 + 4 + $1.key.longCount / 8 }
        }
    }
}

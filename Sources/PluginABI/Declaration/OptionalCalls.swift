// The initialisers of `Action` for bodies of one line that end in an optional call without a result:
//
//     Action("add") { counter?.add(1) }

extension Action {
    /// Makes a synchronous action whose closure takes no input and returns nothing.
    @_disfavoredOverload @inlinable
    public init(
        _ name: String,
        _ body: @escaping @Sendable () throws -> Void?
    ) { self.init(name) { () throws -> Void in _ = try body() } }

    /// Makes a synchronous action whose closure takes one input and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A>(
        _ name: String, _ a: some ActionInput<Instance, A>,
        _ body: @escaping @Sendable (A) throws -> Void?
    ) { self.init(name, a) { (a) throws -> Void in _ = try body(a) } }

    /// Makes a synchronous action whose closure takes two inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A, B>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ body: @escaping @Sendable (A, B) throws -> Void?
    ) { self.init(name, a, b) { (a, b) throws -> Void in _ = try body(a, b) } }

    /// Makes a synchronous action whose closure takes three inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A, B, C>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>,
        _ body: @escaping @Sendable (A, B, C) throws -> Void?
    ) { self.init(name, a, b, c) { (a, b, c) throws -> Void in _ = try body(a, b, c) } }

    /// Makes a synchronous action whose closure takes four inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A, B, C, D>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>,
        _ body: @escaping @Sendable (A, B, C, D) throws -> Void?
    ) { self.init(name, a, b, c, d) { (a, b, c, d) throws -> Void in _ = try body(a, b, c, d) } }

    /// Makes a synchronous action whose closure takes five inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A, B, C, D, E>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ body: @escaping @Sendable (A, B, C, D, E) throws -> Void?
    ) { self.init(name, a, b, c, d, e) { (a, b, c, d, e) throws -> Void in _ = try body(a, b, c, d, e) } }

    /// Makes a synchronous action whose closure takes six inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A, B, C, D, E, F>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>,
        _ body: @escaping @Sendable (A, B, C, D, E, F) throws -> Void?
    ) { self.init(name, a, b, c, d, e, f) { (a, b, c, d, e, f) throws -> Void in _ = try body(a, b, c, d, e, f) } }

    /// Makes a synchronous action whose closure takes seven inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A, B, C, D, E, F, G>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G) throws -> Void?
    ) {
        self.init(name, a, b, c, d, e, f, g) { (a, b, c, d, e, f, g) throws -> Void in _ = try body(a, b, c, d, e, f, g)
        }
    }

    /// Makes a synchronous action whose closure takes eight inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A, B, C, D, E, F, G, H>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>, _ h: some ActionInput<Instance, H>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G, H) throws -> Void?
    ) {
        self.init(name, a, b, c, d, e, f, g, h) { (a, b, c, d, e, f, g, h) throws -> Void in
            _ = try body(a, b, c, d, e, f, g, h)
        }
    }

    /// Makes an asynchronous action whose `async` closure takes no input and returns nothing.
    @_disfavoredOverload @inlinable
    public init(
        _ name: String,
        _ body: @escaping @Sendable () async throws -> Void?
    ) { self.init(name) { () async throws -> Void in _ = try await body() } }

    /// Makes an asynchronous action whose `async` closure takes one input and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>,
        _ body: @escaping @Sendable (A) async throws -> Void?
    ) { self.init(name, a) { (a) async throws -> Void in _ = try await body(a) } }

    /// Makes an asynchronous action whose `async` closure takes two inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable, B: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ body: @escaping @Sendable (A, B) async throws -> Void?
    ) { self.init(name, a, b) { (a, b) async throws -> Void in _ = try await body(a, b) } }

    /// Makes an asynchronous action whose `async` closure takes three inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable, B: Sendable, C: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>,
        _ body: @escaping @Sendable (A, B, C) async throws -> Void?
    ) { self.init(name, a, b, c) { (a, b, c) async throws -> Void in _ = try await body(a, b, c) } }

    /// Makes an asynchronous action whose `async` closure takes four inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>,
        _ body: @escaping @Sendable (A, B, C, D) async throws -> Void?
    ) { self.init(name, a, b, c, d) { (a, b, c, d) async throws -> Void in _ = try await body(a, b, c, d) } }

    /// Makes an asynchronous action whose `async` closure takes five inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ body: @escaping @Sendable (A, B, C, D, E) async throws -> Void?
    ) { self.init(name, a, b, c, d, e) { (a, b, c, d, e) async throws -> Void in _ = try await body(a, b, c, d, e) } }

    /// Makes an asynchronous action whose `async` closure takes six inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>,
        _ body: @escaping @Sendable (A, B, C, D, E, F) async throws -> Void?
    ) {
        self.init(name, a, b, c, d, e, f) { (a, b, c, d, e, f) async throws -> Void in
            _ = try await body(a, b, c, d, e, f)
        }
    }

    /// Makes an asynchronous action whose `async` closure takes seven inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable, G: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G) async throws -> Void?
    ) {
        self.init(name, a, b, c, d, e, f, g) { (a, b, c, d, e, f, g) async throws -> Void in
            _ = try await body(a, b, c, d, e, f, g)
        }
    }

    /// Makes an asynchronous action whose `async` closure takes eight inputs and returns nothing.
    @inlinable
    @_disfavoredOverload
    public init<
        A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable, G: Sendable, H: Sendable
    >(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>, _ h: some ActionInput<Instance, H>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G, H) async throws -> Void?
    ) {
        self.init(name, a, b, c, d, e, f, g, h) { (a, b, c, d, e, f, g, h) async throws -> Void in
            _ = try await body(a, b, c, d, e, f, g, h)
        }
    }
}

// The initialisers of `Action`, one for each number of inputs and each kind of closure. They do not use parameter
// packs: packs are not specialised, and cost several hundred nanoseconds per call.
//
// The initialisers for closures without a result are disfavoured, and so are those in OptionalCalls.swift and
// UncrossableResults.swift: the compiler then considers them only if none with a result fits. Otherwise, for a body of
// one line, it would try all combinations of its operators again without a result type, which can take seconds.

// MARK: Synchronous actions with a result

extension Action {
    /// Makes a synchronous action whose closure takes no input and returns the result.
    @inlinable public init<R: ActionResult>(
        _ name: String,
        _ body: @escaping @Sendable () throws -> R
    ) { self.init(name, [], R.self, isAsync: false) { $0.resolve(try body()) } }

    /// Makes a synchronous action whose closure takes one input and returns the result.
    @inlinable public init<A, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>,
        _ body: @escaping @Sendable (A) throws -> R
    ) { self.init(name, Inputs1(a), R.self) { inputs in { try $0.resolve(inputs, body) } } }

    /// Makes a synchronous action whose closure takes two inputs and returns the result.
    @inlinable public init<A, B, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ body: @escaping @Sendable (A, B) throws -> R
    ) { self.init(name, Inputs2(a, b), R.self) { inputs in { try $0.resolve(inputs, body) } } }

    /// Makes a synchronous action whose closure takes three inputs and returns the result.
    @inlinable public init<A, B, C, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>,
        _ body: @escaping @Sendable (A, B, C) throws -> R
    ) { self.init(name, Inputs3(a, b, c), R.self) { inputs in { try $0.resolve(inputs, body) } } }

    /// Makes a synchronous action whose closure takes four inputs and returns the result.
    @inlinable public init<A, B, C, D, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>,
        _ body: @escaping @Sendable (A, B, C, D) throws -> R
    ) { self.init(name, Inputs4(a, b, c, d), R.self) { inputs in { try $0.resolve(inputs, body) } } }

    /// Makes a synchronous action whose closure takes five inputs and returns the result.
    @inlinable public init<A, B, C, D, E, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ body: @escaping @Sendable (A, B, C, D, E) throws -> R
    ) { self.init(name, Inputs5(a, b, c, d, e), R.self) { inputs in { try $0.resolve(inputs, body) } } }

    /// Makes a synchronous action whose closure takes six inputs and returns the result.
    @inlinable public init<A, B, C, D, E, F, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>,
        _ body: @escaping @Sendable (A, B, C, D, E, F) throws -> R
    ) { self.init(name, Inputs6(a, b, c, d, e, f), R.self) { inputs in { try $0.resolve(inputs, body) } } }

    /// Makes a synchronous action whose closure takes seven inputs and returns the result.
    @inlinable public init<A, B, C, D, E, F, G, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G) throws -> R
    ) { self.init(name, Inputs7(a, b, c, d, e, f, g), R.self) { inputs in { try $0.resolve(inputs, body) } } }

    /// Makes a synchronous action whose closure takes eight inputs and returns the result.
    @inlinable public init<A, B, C, D, E, F, G, H, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>, _ h: some ActionInput<Instance, H>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G, H) throws -> R
    ) { self.init(name, Inputs8(a, b, c, d, e, f, g, h), R.self) { inputs in { try $0.resolve(inputs, body) } } }
}

// MARK: Synchronous actions without a result, and actions that reply through a handle

extension Action {
    /// Makes a synchronous action whose closure takes no input and returns nothing.
    @_disfavoredOverload @inlinable
    public init(
        _ name: String,
        _ body: @escaping @Sendable () throws -> Void
    ) {
        self.init(name, [], .null, isAsync: false) { call in
            try body()
            call.resolve()
        }
    }

    /// Makes a synchronous action whose closure takes one input and returns nothing. With `.reply` among its
    /// inputs, the action is asynchronous, and replies through the handle.
    @_disfavoredOverload @inlinable
    public init<A>(
        _ name: String, _ a: some ActionInput<Instance, A>,
        _ body: @escaping @Sendable (A) throws -> Void
    ) { self.init(name, Inputs1(a)) { inputs in { try $0.run(inputs, body) } } }

    /// Makes a synchronous action whose closure takes two inputs and returns nothing. With `.reply` among its
    /// inputs, the action is asynchronous, and replies through the handle.
    @_disfavoredOverload @inlinable
    public init<A, B>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ body: @escaping @Sendable (A, B) throws -> Void
    ) { self.init(name, Inputs2(a, b)) { inputs in { try $0.run(inputs, body) } } }

    /// Makes a synchronous action whose closure takes three inputs and returns nothing. With `.reply` among its
    /// inputs, the action is asynchronous, and replies through the handle.
    @_disfavoredOverload @inlinable
    public init<A, B, C>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>,
        _ body: @escaping @Sendable (A, B, C) throws -> Void
    ) { self.init(name, Inputs3(a, b, c)) { inputs in { try $0.run(inputs, body) } } }

    /// Makes a synchronous action whose closure takes four inputs and returns nothing. With `.reply` among its
    /// inputs, the action is asynchronous, and replies through the handle.
    @_disfavoredOverload @inlinable
    public init<A, B, C, D>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>,
        _ body: @escaping @Sendable (A, B, C, D) throws -> Void
    ) { self.init(name, Inputs4(a, b, c, d)) { inputs in { try $0.run(inputs, body) } } }

    /// Makes a synchronous action whose closure takes five inputs and returns nothing. With `.reply` among its
    /// inputs, the action is asynchronous, and replies through the handle.
    @_disfavoredOverload @inlinable
    public init<A, B, C, D, E>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ body: @escaping @Sendable (A, B, C, D, E) throws -> Void
    ) { self.init(name, Inputs5(a, b, c, d, e)) { inputs in { try $0.run(inputs, body) } } }

    /// Makes a synchronous action whose closure takes six inputs and returns nothing. With `.reply` among its
    /// inputs, the action is asynchronous, and replies through the handle.
    @_disfavoredOverload @inlinable
    public init<A, B, C, D, E, F>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>,
        _ body: @escaping @Sendable (A, B, C, D, E, F) throws -> Void
    ) { self.init(name, Inputs6(a, b, c, d, e, f)) { inputs in { try $0.run(inputs, body) } } }

    /// Makes a synchronous action whose closure takes seven inputs and returns nothing. With `.reply` among its
    /// inputs, the action is asynchronous, and replies through the handle.
    @_disfavoredOverload @inlinable
    public init<A, B, C, D, E, F, G>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G) throws -> Void
    ) { self.init(name, Inputs7(a, b, c, d, e, f, g)) { inputs in { try $0.run(inputs, body) } } }

    /// Makes a synchronous action whose closure takes eight inputs and returns nothing. With `.reply` among its
    /// inputs, the action is asynchronous, and replies through the handle.
    @_disfavoredOverload @inlinable
    public init<A, B, C, D, E, F, G, H>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>, _ h: some ActionInput<Instance, H>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G, H) throws -> Void
    ) { self.init(name, Inputs8(a, b, c, d, e, f, g, h)) { inputs in { try $0.run(inputs, body) } } }
}

// MARK: Asynchronous actions with a result

extension Action {
    /// Makes an asynchronous action whose `async` closure takes no input and returns the result.
    @inlinable public init<R: ActionResult>(
        _ name: String,
        _ body: @escaping @Sendable () async throws -> R
    ) { self.init(name, NoInputs(), awaiting: { _ in try await body() }) }

    /// Makes an asynchronous action whose `async` closure takes one input and returns the result.
    @inlinable public init<A: Sendable, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>,
        _ body: @escaping @Sendable (A) async throws -> R
    ) { self.init(name, Inputs1(a), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes two inputs and returns the result.
    @inlinable public init<A: Sendable, B: Sendable, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ body: @escaping @Sendable (A, B) async throws -> R
    ) { self.init(name, Inputs2(a, b), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes three inputs and returns the result.
    @inlinable public init<A: Sendable, B: Sendable, C: Sendable, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>,
        _ body: @escaping @Sendable (A, B, C) async throws -> R
    ) { self.init(name, Inputs3(a, b, c), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes four inputs and returns the result.
    @inlinable public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>,
        _ body: @escaping @Sendable (A, B, C, D) async throws -> R
    ) { self.init(name, Inputs4(a, b, c, d), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes five inputs and returns the result.
    @inlinable public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ body: @escaping @Sendable (A, B, C, D, E) async throws -> R
    ) { self.init(name, Inputs5(a, b, c, d, e), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes six inputs and returns the result.
    @inlinable
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable, R: ActionResult>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>,
        _ body: @escaping @Sendable (A, B, C, D, E, F) async throws -> R
    ) { self.init(name, Inputs6(a, b, c, d, e, f), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes seven inputs and returns the result.
    @inlinable
    public init<
        A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable, G: Sendable, R: ActionResult
    >(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G) async throws -> R
    ) { self.init(name, Inputs7(a, b, c, d, e, f, g), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes eight inputs and returns the result.
    @inlinable
    public init<
        A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable, G: Sendable, H: Sendable,
        R: ActionResult
    >(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>, _ h: some ActionInput<Instance, H>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G, H) async throws -> R
    ) { self.init(name, Inputs8(a, b, c, d, e, f, g, h), awaiting: body) }
}

// MARK: Asynchronous actions without a result

extension Action {
    /// Makes an asynchronous action whose `async` closure takes no input and returns nothing.
    @_disfavoredOverload @inlinable
    public init(
        _ name: String,
        _ body: @escaping @Sendable () async throws -> Void
    ) { self.init(name, NoInputs(), awaiting: { _ in try await body() }) }

    /// Makes an asynchronous action whose `async` closure takes one input and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>,
        _ body: @escaping @Sendable (A) async throws -> Void
    ) { self.init(name, Inputs1(a), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes two inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable, B: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ body: @escaping @Sendable (A, B) async throws -> Void
    ) { self.init(name, Inputs2(a, b), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes three inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable, B: Sendable, C: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>,
        _ body: @escaping @Sendable (A, B, C) async throws -> Void
    ) { self.init(name, Inputs3(a, b, c), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes four inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>,
        _ body: @escaping @Sendable (A, B, C, D) async throws -> Void
    ) { self.init(name, Inputs4(a, b, c, d), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes five inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ body: @escaping @Sendable (A, B, C, D, E) async throws -> Void
    ) { self.init(name, Inputs5(a, b, c, d, e), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes six inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>,
        _ body: @escaping @Sendable (A, B, C, D, E, F) async throws -> Void
    ) { self.init(name, Inputs6(a, b, c, d, e, f), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes seven inputs and returns nothing.
    @_disfavoredOverload @inlinable
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable, G: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G) async throws -> Void
    ) { self.init(name, Inputs7(a, b, c, d, e, f, g), awaiting: body) }

    /// Makes an asynchronous action whose `async` closure takes eight inputs and returns nothing.
    @inlinable
    public init<A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable, G: Sendable, H: Sendable>(
        _ name: String, _ a: some ActionInput<Instance, A>, _ b: some ActionInput<Instance, B>,
        _ c: some ActionInput<Instance, C>, _ d: some ActionInput<Instance, D>, _ e: some ActionInput<Instance, E>,
        _ f: some ActionInput<Instance, F>, _ g: some ActionInput<Instance, G>, _ h: some ActionInput<Instance, H>,
        _ body: @escaping @Sendable (A, B, C, D, E, F, G, H) async throws -> Void
    ) { self.init(name, Inputs8(a, b, c, d, e, f, g, h), awaiting: body) }
}

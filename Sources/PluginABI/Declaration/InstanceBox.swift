/// A box that carries an instance of any Swift type across the boundary, as a pointer.
@usableFromInline class AnyInstanceBox {}

@usableFromInline final class InstanceBox<Instance: Sendable>: AnyInstanceBox {
    let instance: Instance

    init(_ instance: Instance) { self.instance = instance }

    /// Returns a box as a pointer, with one reference that `destroyInstance` releases.
    static func retained(_ instance: Instance) -> UnsafeMutableRawPointer {
        Unmanaged<AnyInstanceBox>.passRetained(InstanceBox(instance)).toOpaque()
    }

    /// Returns the instance in a pointer that `retained` returned. This is sound because the host passes the pointer
    /// only to actions of the target or object type that it was made for, in the module that made it.
    @usableFromInline static func instance(at pointer: UnsafeMutableRawPointer?) throws(PluginError) -> Instance {
        guard let pointer else {
            throw PluginError(.instanceFailed, "The action was called without its instance of \(Instance.self).")
        }
        let box = Unmanaged<AnyInstanceBox>.fromOpaque(pointer).takeUnretainedValue()
        guard type(of: box) == InstanceBox<Instance>.self else {
            throw PluginError(
                .instanceFailed, "The action needs an instance of \(Instance.self), but was called with another type.")
        }
        return unsafeDowncast(box, to: InstanceBox<Instance>.self).instance
    }
}

/// Releases the reference that `InstanceBox.retained` returned.
func destroyInstance(_ pointer: UnsafeMutableRawPointer?) {
    if let pointer { Unmanaged<AnyInstanceBox>.fromOpaque(pointer).release() }
}

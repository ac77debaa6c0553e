;; A moving average per station, over its last eight values. What a consumer might send to its broker:
;; the payload is a station's number and its level, (i32, f64), little-endian, 12 bytes.
;; It puts out an event whose content is the average, with the station's number as payload.
(module
  (import "roamcast" "payload_size" (func $payload_size (result i32)))
  (import "roamcast" "payload_read" (func $payload_read (param i32 i32 i32)))
  (import "roamcast" "emit" (func $emit (param f64 i32 i32)))
  (memory (export "memory") 1)

  ;; 0..11: the payload. From 16: per station, of 256, how many values it has had (i32 in 8 bytes), and 8 values.
  (global $table i32 (i32.const 16))
  (global $row i32 (i32.const 72))

  (func (export "state") (result i32) (global.get $table))
  (func (export "state_size") (result i32) (i32.mul (global.get $row) (i32.const 256)))

  (func (export "process") (local $at i32) (local $seen i32) (local $i i32) (local $n i32) (local $sum f64)
    (if (i32.ne (call $payload_size) (i32.const 12)) (then (return)))
    (call $payload_read (i32.const 0) (i32.const 0) (i32.const 12))
    (local.set $at
      (i32.add (global.get $table)
        (i32.mul (global.get $row) (i32.and (i32.load (i32.const 0)) (i32.const 255)))))
    (local.set $seen (i32.load (local.get $at)))
    ;; the newest value replaces the oldest
    (f64.store offset=8
      (i32.add (local.get $at) (i32.mul (i32.const 8) (i32.and (local.get $seen) (i32.const 7))))
      (f64.load offset=4 (i32.const 0)))
    (local.set $seen (i32.add (local.get $seen) (i32.const 1)))
    (i32.store (local.get $at) (local.get $seen))
    (local.set $n (select (local.get $seen) (i32.const 8) (i32.lt_u (local.get $seen) (i32.const 8))))
    (loop $next
      (local.set $sum (f64.add (local.get $sum)
        (f64.load offset=8 (i32.add (local.get $at) (i32.mul (i32.const 8) (local.get $i))))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $n))))
    (call $emit (f64.div (local.get $sum) (f64.convert_i32_u (local.get $n))) (i32.const 0) (i32.const 4))))

-- A frame describes the windows of the quotas with one span that ask for the key. Slots belong to
-- no quota: each quota counts the slots in its own window, and they are kept as long as the
-- longest window needs them.
--
-- The numbers of a frame are the span; the length of its slots; the limit; the time when it last
-- asked, or when the permits it was granted are used; and two more. The length is a block's, 1
-- for a log, 0 for fixed windows, or a negative number that identifies a calendar, whose periods
-- only callers know. For fixed windows the two last numbers are the begin and end of the current
-- one. For blocks and logs they concern slots that were made before the frame: how much later
-- than their begin their takes may be, and until when there are such slots.
--
-- A frame is dropped if it has not asked for the longest span, and no reservation has been due
-- within it. An ask is recorded once in a quarter of the frame's own span. If it were dropped
-- after its own span, its window would be set again each time its quota asks. Each time, all of a
-- longer frame's slot would count as taken just now. There are at most MOST frames. Beyond that,
-- two become one that is as long as either, with slots of an instant.
local SPAN = 1
local LENGTH = 2
local LIMIT = 3
local ASKED = 4
local FROM = 5
local TILL = 6
local frames = {list = nil, over = nil, own = nil}
do
  local MOST = 4
  local NUMBERS = 6

  -- Reads the frames after the head of a state, and separates those that have ended. `by` is how
  -- far the clock was set back.
  function frames.read(text, at, by)
    local all, list, over, longest = {}, {}, {}, 0
    local count = #text >= at + 8 and -struct.unpack('<d', text, at + 1) or 0
    for i = 1, count do
      local f = {struct.unpack('<dddddd', text, at + 48 * i - 39)}
      f[ASKED], f[TILL], f[NUMBERS + 1] = f[ASKED] - by, f[TILL] - by, nil
      if f[LENGTH] < 1 then f[FROM] = f[FROM] - by end
      all[i], longest = f, math.max(longest, f[SPAN])
    end
    for i = 1, count do
      local f = all[i]
      local to = (on.t < f[ASKED] + longest + f[SPAN] / 4 or on.t < f[TILL]) and list or over
      to[#to + 1] = f
    end
    frames.list, frames.over = list, over
  end

  function frames.pack()
    local list = frames.list
    if #list == 1 then return struct.pack('<ddddddd', -1, unpack(list[1])) end
    local packed = struct.pack('<d', -#list)
    for i = 1, #list do packed = packed .. struct.pack('<dddddd', unpack(list[i])) end
    return packed
  end

  -- Reports whether the window of a frame is open. If a later one holds a reservation, one is
  -- open: these windows follow each other without a gap.
  local function open(f, newest)
    if on.t < f[TILL] then return true end
    if f[LENGTH] < 0 or newest < f[TILL] then return false end
    local from = on.t - (on.t - f[TILL]) % f[SPAN]
    if newest < from then return false end
    f[FROM], f[TILL] = from, from + f[SPAN]
    return true
  end

  -- Returns the time up to which a frame needs no slots.
  function frames.past(f, newest)
    if f[LENGTH] >= 1 then return on.t - f[SPAN] - (on.t < f[TILL] and f[FROM] or 0) end
    if open(f, newest) then return f[FROM] - 1 end
    return f[LENGTH] < 0 and f[TILL] - 1 or on.t
  end

  -- Returns how much later takes may be than the begin of a slot that is kept for a frame, beyond
  -- a boundary of slots of some length.
  local function late(f, length)
    if f[LENGTH] < 1 then return math.max(f[SPAN], f[TILL] - f[FROM]) end
    local by = length % f[LENGTH] == 0 and 0 or f[LENGTH]
    return on.t < f[TILL] and math.max(by, f[FROM]) or by
  end

  -- Sets the caller's frame: the one with its span, or a new one. A new one takes over the window
  -- of a frame with the same span and length. That frame may have ended, since all slots that
  -- still exist were made while it was kept. If there is no such frame, returns how much later
  -- takes may be than the begin of their slot, whichever frame it is kept for, and the end of the
  -- last of the windows.
  function frames.enter(span, length)
    local own, like, most, till = nil, nil, 0, 0
    local list = #frames.list > 0 and frames.list or frames.over
    for i = 1, #list do
      most = math.max(most, late(list[i], length))
      till = math.max(till, list[i][TILL])
    end
    for _, list in ipairs({frames.over, frames.list}) do
      for i = 1, #list do
        local f = list[i]
        if f[SPAN] == span and f[LENGTH] == length then
          like = f
          if f[LIMIT] == on.limit then own = f end
        end
      end
    end
    frames.own = own or {span, length, on.limit, like and like[ASKED] or on.t, like and like[FROM] or 0, like and like[TILL] or 0}
    if not like then return most, till end
  end

  -- Keeps the caller's frame, as one that asks at that time. Its reservations for a later time
  -- count in all frames, which are needed as long.
  function frames.keep(at)
    local list, own, kept = frames.list, frames.own, false
    own[ASKED] = math.max(own[ASKED], at)
    for i = 1, #list do
      if list[i] == own then kept = true end
      if at > on.t then list[i][ASKED] = math.max(list[i][ASKED], at) end
    end
    if kept then return end
    if #list == MOST then
      table.sort(list, function(a, b) return a[ASKED] > b[ASKED] end)
      local a, b = list[MOST - 1], table.remove(list)
      local by = math.max(late(a, 1), late(b, 1))
      for _, i in ipairs({SPAN, LIMIT, ASKED, TILL}) do a[i] = math.max(a[i], b[i]) end
      a[LENGTH], a[FROM], a[TILL] = 1, by, math.max(a[TILL], on.t + a[SPAN] + by)
    end
    list[#list + 1] = own
  end

  -- Returns the slot in which a take counts now: the newest of the slots that the frames have for
  -- it, so that each finds it in its window. Opens a window that was closed.
  function frames.slot(newest)
    local at = 0
    for i = 1, #frames.list do
      local f = frames.list[i]
      if f[LENGTH] >= 1 then
        at = math.max(at, on.t - on.t % f[LENGTH])
      elseif open(f, newest) then
        at = math.max(at, f[FROM])
      else
        if f[LENGTH] == 0 then f[FROM], f[TILL] = on.t, on.t + f[SPAN] end
        at = on.t
      end
    end
    return at
  end

  -- Returns the time from which no frame needs the newest slot.
  function frames.ends(newest)
    local ends = 0
    for i = 1, #frames.list do
      local f = frames.list[i]
      local late = f[LENGTH] >= 1 and on.t < f[TILL] and f[FROM] or 0
      if f ~= frames.own or f[LENGTH] >= 0 then ends = math.max(ends, newest + f[SPAN] + late) end
      if f[LENGTH] < 1 then ends = math.max(ends, f[TILL]) end
    end
    return ends
  end
end

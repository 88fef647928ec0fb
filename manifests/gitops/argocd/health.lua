-- The health of a TritonDeployment for Argo CD: `obj` is the object, and the answer has a status and a message.
local health = {status = "Progressing", message = "the operator has not looked at this version of the object yet"}
if obj.status == nil or obj.status.conditions == nil then
  return health
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return health
end
local conditions = {}
for _, condition in ipairs(obj.status.conditions) do
  conditions[condition.type] = condition
end
local ready, stalled, reconciling = conditions["Ready"], conditions["Stalled"], conditions["Reconciling"]
local newest = conditions["UpToDate"]
if ready == nil then
  return health
end
health.message = ready.reason .. ": " .. ready.message
-- An object that is Ready may still be Reconciling: the revision of an edit is soaked, and may be undone.
if stalled ~= nil and stalled.status == "True" then
  health.status = "Degraded"
elseif reconciling ~= nil and reconciling.status == "True" then
  health.status = "Progressing"
  -- While passes of the operator fail, Ready says nothing of it.
  if ready.status == "True" then
    health.message = health.message .. "; Reconciling: " .. reconciling.reason .. ": " .. reconciling.message
  end
elseif ready.status == "True" then
  health.status = "Healthy"
  -- What the commit asks for serves. Files that are newer than it, or newer images, are no fault of the commit.
  if newest ~= nil and newest.status ~= "True" then
    health.message = health.message .. "; UpToDate: " .. newest.reason .. ": " .. newest.message
  end
elseif ready.reason == "AwaitingApproval" or ready.reason == "Suspended" then
  health.status = "Suspended"
end
return health
